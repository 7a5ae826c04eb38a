/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-EH42SWCP.js";import"./chunk-F6R2IHWW.js";import"./chunk-GRMG4GGS.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
