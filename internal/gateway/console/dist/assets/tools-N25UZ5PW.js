/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-ALZTRV5B.js";import"./chunk-TOOYOVCY.js";import"./chunk-M2YR4VCF.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
