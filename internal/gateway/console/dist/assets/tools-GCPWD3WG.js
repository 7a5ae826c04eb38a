/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-D4AIKEHZ.js";import"./chunk-5BKUZDIL.js";import"./chunk-YFRDY3RG.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
