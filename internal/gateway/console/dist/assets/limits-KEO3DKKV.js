/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-O4HEZZH2.js";import"./chunk-M2YR4VCF.js";import"./chunk-OOJM4CTU.js";export{c as default,a as isOf,b as useLastRuns};
